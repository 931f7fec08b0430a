// Writes lines to a topic and reads them back, with nothing but the stubs made from proto/.
//
//	PYTHON=python3 ./generate.sh
//	go run . -server 127.0.0.1:7450 -topic example -count 1000
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "tidemill.dev/examples/go/gen/tidemillv1"
)

const batch = 100

func dial(address string) *grpc.ClientConn {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatalf("%s: %v", address, err)
	}
	return conn
}

// owners asks any broker who serves the partitions of a topic.
func owners(ctx context.Context, conn *grpc.ClientConn, topic string) []*pb.Partition {
	answer, err := pb.NewMetadataClient(conn).Describe(ctx, &pb.DescribeRequest{Topics: []string{topic}})
	if err != nil {
		log.Fatalf("describe %s: %v", topic, err)
	}
	if len(answer.Topics) != 1 {
		log.Fatalf("topic %s does not exist", topic)
	}
	return answer.Topics[0].Partitions
}

// produce writes the values in order; an answer means that they are on the disks of the ack quorum.
func produce(ctx context.Context, p *pb.Partition, topic string, values [][]byte) {
	conn := dial(p.Owner)
	defer conn.Close()
	client := pb.NewProducerClient(conn)
	for start := 0; start < len(values); start += batch {
		end := min(start+batch, len(values))
		records := make([]*pb.Record, 0, end-start)
		for _, v := range values[start:end] {
			records = append(records, &pb.Record{Value: v})
		}
		_, err := client.Produce(ctx, &pb.ProduceRequest{
			Topic: topic, Partition: &p.Index, Epoch: p.Epoch, Records: records,
		})
		if err != nil {
			log.Fatalf("produce to %s/%d: %v", topic, p.Index, err)
		}
	}
}

// consume reads the partition from its start to its end.
func consume(ctx context.Context, p *pb.Partition, topic string) [][]byte {
	values, _ := consumeFrom(ctx, p, topic, 0)
	return values
}

// consumeFrom reads the partition from an offset to its end, and answers the offset behind it.
func consumeFrom(ctx context.Context, p *pb.Partition, topic string, offset int64) ([][]byte, int64) {
	conn := dial(p.Owner)
	defer conn.Close()
	client := pb.NewConsumerClient(conn)
	var values [][]byte
	for {
		want := &pb.FetchPartition{Topic: topic, Partition: p.Index, Epoch: p.Epoch, Offset: offset}
		answer, err := client.Fetch(ctx, &pb.FetchRequest{
			Partitions: []*pb.FetchPartition{want}, MaxWaitMs: 1000, AsRecords: true,
		})
		if err != nil {
			log.Fatalf("fetch %s/%d: %v", topic, p.Index, err)
		}
		got := answer.Partitions[0]
		if got.Error != nil {
			log.Fatalf("fetch %s/%d: %s: %s", topic, p.Index, got.Error.Code, got.Error.Message)
		}
		for _, r := range got.Records {
			values = append(values, r.Value)
		}
		offset = got.NextOffset
		if offset >= got.HighWatermark {
			return values, offset
		}
	}
}

func main() {
	server := flag.String("server", "127.0.0.1:7450", "address of any broker")
	topic := flag.String("topic", "example-go", "topic; created when it does not exist")
	count := flag.Int("count", 1000, "records")
	flag.Parse()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn := dial(*server)
	defer conn.Close()
	_, err := pb.NewAdminClient(conn).CreateTopic(ctx, &pb.CreateTopicRequest{
		Name: *topic, Partitions: 2, IfNotExists: true,
	})
	if err != nil {
		log.Fatalf("create %s: %v", *topic, err)
	}
	partitions := owners(ctx, conn, *topic)
	total := 0
	for _, p := range partitions {
		before := len(consume(ctx, p, *topic))
		var sent [][]byte
		for n := range *count / len(partitions) {
			sent = append(sent, fmt.Appendf(nil, "line %d of partition %d", n, p.Index))
		}
		produce(ctx, p, *topic, sent)
		got := consume(ctx, p, *topic)[before:]
		if len(got) != len(sent) {
			log.Fatalf("partition %d: %d records read, %d written", p.Index, len(got), len(sent))
		}
		for i := range sent {
			if !bytes.Equal(sent[i], got[i]) {
				log.Fatalf("partition %d: record %d differs", p.Index, i)
			}
		}
		total += len(sent)
	}
	fmt.Printf("%d records written and read back, in order\n", total)

	// As a group: everything once, then what came since.
	first := readGroup(ctx, *server, *topic, "example-go")
	if again := readGroup(ctx, *server, *topic, "example-go"); again != 0 {
		log.Fatalf("the group read %d records twice", again)
	}
	fmt.Printf("%d records read by a group, none twice\n", first)
}
